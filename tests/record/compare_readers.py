# SPDX-License-Identifier: Apache-2.0
"""Sends texts made at random through the readers of CSV and JSON and through those of Python's
library; they must agree on every record and on every refusal.

usage: compare_readers.py READERS [SEED [CASES]]

READERS is the program of readers.c. Python's reader of JSON takes more than RFC 8259 has (NaN,
halves of surrogate pairs); that is ruled out here.
"""
import csv
import io
import json
import random
import struct
import subprocess
import sys

COLUMNS = "abc"


def run(program, what, cases):
    packed = b"".join(struct.pack("=I", len(case)) + case for case in cases)
    done = subprocess.run([program, what], input=packed, stdout=subprocess.PIPE, check=True)
    lines = done.stdout.decode().split("\n")[:-1]
    if len(lines) != len(cases):
        sys.exit(f"{what}: {len(lines)} answers to {len(cases)} cases")
    return lines


def compare(what, cases, got, expected):
    wrong = [i for i in range(len(cases)) if got[i] != expected[i]]
    for i in wrong[:10]:
        print(f"{what}: {cases[i]!r} gave {got[i]}, not {expected[i]}")
    print(f"{what}: {len(cases)} cases, {len(wrong)} differ")
    return not wrong


# --- CSV ---

CSV_PARTS = ['a', 'b', '"', '"', '""', ',', ',', ',', '\n', '\r\n', ' ', '"x"', 'x,y,z\n']


def csv_records(text):
    records = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row and len(row) != len(COLUMNS):
                return records + ["bad"]
            if row:
                records.append(json.dumps(dict(zip(COLUMNS, row)), separators=(",", ":")))
    except csv.Error:
        records.append("bad")
    return records


def check_csv(program, count):
    cases = ["".join(random.choices(CSV_PARTS, k=random.randint(0, 14))) for _ in range(count)]
    answers = run(program, "csv", [case.encode() for case in cases])
    got = [["bad" if part.startswith("bad") else part for part in answer.split("\t")[:-1]]
           for answer in answers]
    return compare("csv", cases, got, [csv_records(case) for case in cases])


# --- JSON ---

JSON_SCALARS = ["1", "-0", "0.5e3", "1E+2", '"a"', '"\\u00e9"', '"\\ud83d\\ude00"', "true", "false",
                "null", '"\u00e9\u20ac"', '""', "12345678901234567890123", "[]", "{}"]
JSON_BYTES = b'{}[],:"\\ue0123456789-+.E tfn\n\x01\xff\x80'


def json_value(depth):
    choice = random.random()
    if depth == 0 or choice < 0.5:
        return random.choice(JSON_SCALARS)
    parts = [json_value(depth - 1) for _ in range(random.randint(0, 3))]
    if choice < 0.75:
        return "[" + ",".join(parts) + "]"
    return "{" + ", ".join(f'"k{i}" : {part}' for i, part in enumerate(parts)) + "}"


def mutate(text):
    mutant = bytearray(text)
    for _ in range(random.randint(0, 2)):
        at = random.randrange(len(mutant) + 1)
        change = random.choice([bytes([random.choice(JSON_BYTES)]), b""])
        mutant[at:at + random.randint(0, 1)] = change
    return bytes(mutant)


def refuse(word):
    raise ValueError(word)


def check_characters(value):
    """Raises UnicodeEncodeError where half of a surrogate pair stands."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, list):
        for item in value:
            check_characters(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            check_characters(name)
            check_characters(item)


def is_json(text):
    try:
        value = json.loads(text.decode(), parse_constant=refuse)
        check_characters(value)
        return isinstance(value, dict)
    except ValueError:  # of which errors of Unicode are a kind
        return False


def check_json(program, count):
    cases = [mutate(f'{{"x":{json_value(3)}}}'.encode()) for _ in range(count)]
    got = [answer.startswith("1") for answer in run(program, "json", cases)]
    return compare("json", cases, got, [is_json(case) for case in cases])


def main():
    random.seed(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 8000
    good = [check_csv(sys.argv[1], count), check_json(sys.argv[1], count)]
    sys.exit(0 if all(good) else 1)


main()
