// SPDX-License-Identifier: Apache-2.0
// Counting and walking the arguments of a macro, up to 64 of them.
#ifndef LEAT_RECORD_EACH_H
#define LEAT_RECORD_EACH_H

// clang-format off
#define LEATI_COUNT(...) \
    LEATI_COUNT_(__VA_ARGS__, \
        64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, \
        48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, \
        32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, \
        16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, \
        0)
#define LEATI_COUNT_( \
    a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, \
    a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, \
    a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, \
    a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, \
    a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, \
    a61, a62, a63, a64, \
    count, ...) \
    count

#define LEATI_EACH_1(M, T, f) M(T, f)
#define LEATI_EACH_2(M, T, f, ...) M(T, f) LEATI_EACH_1(M, T, __VA_ARGS__)
#define LEATI_EACH_3(M, T, f, ...) M(T, f) LEATI_EACH_2(M, T, __VA_ARGS__)
#define LEATI_EACH_4(M, T, f, ...) M(T, f) LEATI_EACH_3(M, T, __VA_ARGS__)
#define LEATI_EACH_5(M, T, f, ...) M(T, f) LEATI_EACH_4(M, T, __VA_ARGS__)
#define LEATI_EACH_6(M, T, f, ...) M(T, f) LEATI_EACH_5(M, T, __VA_ARGS__)
#define LEATI_EACH_7(M, T, f, ...) M(T, f) LEATI_EACH_6(M, T, __VA_ARGS__)
#define LEATI_EACH_8(M, T, f, ...) M(T, f) LEATI_EACH_7(M, T, __VA_ARGS__)
#define LEATI_EACH_9(M, T, f, ...) M(T, f) LEATI_EACH_8(M, T, __VA_ARGS__)
#define LEATI_EACH_10(M, T, f, ...) M(T, f) LEATI_EACH_9(M, T, __VA_ARGS__)
#define LEATI_EACH_11(M, T, f, ...) M(T, f) LEATI_EACH_10(M, T, __VA_ARGS__)
#define LEATI_EACH_12(M, T, f, ...) M(T, f) LEATI_EACH_11(M, T, __VA_ARGS__)
#define LEATI_EACH_13(M, T, f, ...) M(T, f) LEATI_EACH_12(M, T, __VA_ARGS__)
#define LEATI_EACH_14(M, T, f, ...) M(T, f) LEATI_EACH_13(M, T, __VA_ARGS__)
#define LEATI_EACH_15(M, T, f, ...) M(T, f) LEATI_EACH_14(M, T, __VA_ARGS__)
#define LEATI_EACH_16(M, T, f, ...) M(T, f) LEATI_EACH_15(M, T, __VA_ARGS__)
#define LEATI_EACH_17(M, T, f, ...) M(T, f) LEATI_EACH_16(M, T, __VA_ARGS__)
#define LEATI_EACH_18(M, T, f, ...) M(T, f) LEATI_EACH_17(M, T, __VA_ARGS__)
#define LEATI_EACH_19(M, T, f, ...) M(T, f) LEATI_EACH_18(M, T, __VA_ARGS__)
#define LEATI_EACH_20(M, T, f, ...) M(T, f) LEATI_EACH_19(M, T, __VA_ARGS__)
#define LEATI_EACH_21(M, T, f, ...) M(T, f) LEATI_EACH_20(M, T, __VA_ARGS__)
#define LEATI_EACH_22(M, T, f, ...) M(T, f) LEATI_EACH_21(M, T, __VA_ARGS__)
#define LEATI_EACH_23(M, T, f, ...) M(T, f) LEATI_EACH_22(M, T, __VA_ARGS__)
#define LEATI_EACH_24(M, T, f, ...) M(T, f) LEATI_EACH_23(M, T, __VA_ARGS__)
#define LEATI_EACH_25(M, T, f, ...) M(T, f) LEATI_EACH_24(M, T, __VA_ARGS__)
#define LEATI_EACH_26(M, T, f, ...) M(T, f) LEATI_EACH_25(M, T, __VA_ARGS__)
#define LEATI_EACH_27(M, T, f, ...) M(T, f) LEATI_EACH_26(M, T, __VA_ARGS__)
#define LEATI_EACH_28(M, T, f, ...) M(T, f) LEATI_EACH_27(M, T, __VA_ARGS__)
#define LEATI_EACH_29(M, T, f, ...) M(T, f) LEATI_EACH_28(M, T, __VA_ARGS__)
#define LEATI_EACH_30(M, T, f, ...) M(T, f) LEATI_EACH_29(M, T, __VA_ARGS__)
#define LEATI_EACH_31(M, T, f, ...) M(T, f) LEATI_EACH_30(M, T, __VA_ARGS__)
#define LEATI_EACH_32(M, T, f, ...) M(T, f) LEATI_EACH_31(M, T, __VA_ARGS__)
#define LEATI_EACH_33(M, T, f, ...) M(T, f) LEATI_EACH_32(M, T, __VA_ARGS__)
#define LEATI_EACH_34(M, T, f, ...) M(T, f) LEATI_EACH_33(M, T, __VA_ARGS__)
#define LEATI_EACH_35(M, T, f, ...) M(T, f) LEATI_EACH_34(M, T, __VA_ARGS__)
#define LEATI_EACH_36(M, T, f, ...) M(T, f) LEATI_EACH_35(M, T, __VA_ARGS__)
#define LEATI_EACH_37(M, T, f, ...) M(T, f) LEATI_EACH_36(M, T, __VA_ARGS__)
#define LEATI_EACH_38(M, T, f, ...) M(T, f) LEATI_EACH_37(M, T, __VA_ARGS__)
#define LEATI_EACH_39(M, T, f, ...) M(T, f) LEATI_EACH_38(M, T, __VA_ARGS__)
#define LEATI_EACH_40(M, T, f, ...) M(T, f) LEATI_EACH_39(M, T, __VA_ARGS__)
#define LEATI_EACH_41(M, T, f, ...) M(T, f) LEATI_EACH_40(M, T, __VA_ARGS__)
#define LEATI_EACH_42(M, T, f, ...) M(T, f) LEATI_EACH_41(M, T, __VA_ARGS__)
#define LEATI_EACH_43(M, T, f, ...) M(T, f) LEATI_EACH_42(M, T, __VA_ARGS__)
#define LEATI_EACH_44(M, T, f, ...) M(T, f) LEATI_EACH_43(M, T, __VA_ARGS__)
#define LEATI_EACH_45(M, T, f, ...) M(T, f) LEATI_EACH_44(M, T, __VA_ARGS__)
#define LEATI_EACH_46(M, T, f, ...) M(T, f) LEATI_EACH_45(M, T, __VA_ARGS__)
#define LEATI_EACH_47(M, T, f, ...) M(T, f) LEATI_EACH_46(M, T, __VA_ARGS__)
#define LEATI_EACH_48(M, T, f, ...) M(T, f) LEATI_EACH_47(M, T, __VA_ARGS__)
#define LEATI_EACH_49(M, T, f, ...) M(T, f) LEATI_EACH_48(M, T, __VA_ARGS__)
#define LEATI_EACH_50(M, T, f, ...) M(T, f) LEATI_EACH_49(M, T, __VA_ARGS__)
#define LEATI_EACH_51(M, T, f, ...) M(T, f) LEATI_EACH_50(M, T, __VA_ARGS__)
#define LEATI_EACH_52(M, T, f, ...) M(T, f) LEATI_EACH_51(M, T, __VA_ARGS__)
#define LEATI_EACH_53(M, T, f, ...) M(T, f) LEATI_EACH_52(M, T, __VA_ARGS__)
#define LEATI_EACH_54(M, T, f, ...) M(T, f) LEATI_EACH_53(M, T, __VA_ARGS__)
#define LEATI_EACH_55(M, T, f, ...) M(T, f) LEATI_EACH_54(M, T, __VA_ARGS__)
#define LEATI_EACH_56(M, T, f, ...) M(T, f) LEATI_EACH_55(M, T, __VA_ARGS__)
#define LEATI_EACH_57(M, T, f, ...) M(T, f) LEATI_EACH_56(M, T, __VA_ARGS__)
#define LEATI_EACH_58(M, T, f, ...) M(T, f) LEATI_EACH_57(M, T, __VA_ARGS__)
#define LEATI_EACH_59(M, T, f, ...) M(T, f) LEATI_EACH_58(M, T, __VA_ARGS__)
#define LEATI_EACH_60(M, T, f, ...) M(T, f) LEATI_EACH_59(M, T, __VA_ARGS__)
#define LEATI_EACH_61(M, T, f, ...) M(T, f) LEATI_EACH_60(M, T, __VA_ARGS__)
#define LEATI_EACH_62(M, T, f, ...) M(T, f) LEATI_EACH_61(M, T, __VA_ARGS__)
#define LEATI_EACH_63(M, T, f, ...) M(T, f) LEATI_EACH_62(M, T, __VA_ARGS__)
#define LEATI_EACH_64(M, T, f, ...) M(T, f) LEATI_EACH_63(M, T, __VA_ARGS__)
// clang-format on

#endif
