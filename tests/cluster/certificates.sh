#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Certificates for tests. Sourced; needs the openssl program, and none of its configuration.

# make_authority FOLDER: FOLDER/ca.pem and ca.key.
make_authority() {
    mkdir -p -- "$1"
    cat >"$1/config" <<'TEXT'
[req]
distinguished_name = name
prompt = no
[name]
CN = an authority of a test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
TEXT
    openssl ecparam -name prime256v1 -genkey -noout -out "$1/ca.key" 2>/dev/null &&
        chmod 600 "$1/ca.key" &&
        openssl req -config "$1/config" -new -x509 -key "$1/ca.key" -extensions authority -days 30 -out "$1/ca.pem"
}

# make_certificate FOLDER NAME DAYS: FOLDER/NAME.pem and NAME.key, signed by the authority there; a negative number of
# days makes one that has expired.
make_certificate() {
    printf '[req]\ndistinguished_name = name\nprompt = no\n[name]\nCN = %s\n' "$2" >"$1/$2.config"
    openssl ecparam -name prime256v1 -genkey -noout -out "$1/$2.key" 2>/dev/null &&
        chmod 600 "$1/$2.key" &&
        openssl req -config "$1/$2.config" -new -key "$1/$2.key" -out "$1/$2.csr" &&
        openssl x509 -req -in "$1/$2.csr" -CA "$1/ca.pem" -CAkey "$1/ca.key" -CAcreateserial -days "$3" \
            -out "$1/$2.pem" 2>/dev/null
}
