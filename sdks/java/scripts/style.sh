#!/bin/sh
# What javac does not check in the code that people write: widths, spaces, headers, sizes, imports that nobody uses.
set -eu
cd "$(dirname "$0")/.."
find src/main/java src/test/java -name '*.java' | sort | xargs awk '
  function finish() {
    if (file == "") return
    if (lines > 400) say(file ": " lines " lines, more than 400")
    for (name in imported) if (!(name in used)) say(file ": import of " name " is not used")
  }
  function say(text) { print text; failed = 1 }
  FNR == 1 {
    finish(); file = FILENAME; delete imported; delete used
    if ($0 != "/*") say(FILENAME ": no licence header")
  }
  { lines = FNR }
  /\t/ { say(FILENAME ":" FNR ": tab") }
  /[ ]$/ { say(FILENAME ":" FNR ": space at the end") }
  length($0) > 120 { say(FILENAME ":" FNR ": " length($0) " characters") }
  /^import / { n = split($0, parts, /[.; ]+/); imported[parts[n - 1]] = 1; next }
  { rest = $0; while (match(rest, /[A-Za-z_][A-Za-z_0-9]*/)) { used[substr(rest, RSTART, RLENGTH)] = 1; rest = substr(rest, RSTART + RLENGTH) } }
  END { finish(); exit failed }'
