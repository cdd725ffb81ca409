#!/usr/bin/env bash
# Every relative link of every Markdown file leads to a file or folder that is there. Follows no link out.
set -euo pipefail
cd "$(dirname "$0")/.."

broken=0 checked=0
while IFS= read -r file; do
  while IFS= read -r target; do
    target=${target%%#*}
    case $target in '' | *://* | mailto:*) continue ;; esac
    checked=$((checked + 1))
    if [ ! -e "$(dirname "$file")/$target" ]; then
      echo "$file: link to $target, which is not there" >&2
      broken=$((broken + 1))
    fi
  done < <(grep -oE '\]\([^) ]+' "$file" | cut -c3-)
done < <(find . -name '*.md' -not -path '*/target/*' -not -path './.venv/*' -not -path './.git/*' | sort)

echo "$checked links checked, $broken broken"
[ "$broken" -eq 0 ]
