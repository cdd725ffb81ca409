#!/usr/bin/env bash
# Checks that every relative link in Markdown files leads to an existing file or folder. Ignores external links.
set -euo pipefail
cd "$(dirname "$0")/.."

broken=0 checked=0
while IFS= read -r file; do
  while IFS= read -r target; do
    target=${target%%#*}
    case $target in '' | *://* | mailto:*) continue ;; esac
    checked=$((checked + 1))
    if [ ! -e "$(dirname "$file")/$target" ]; then
      echo "$file: broken link to $target" >&2
      broken=$((broken + 1))
    fi
  done < <(grep -oE '\]\([^) ]+' "$file" | cut -c3-)
done < <(find . -name '*.md' -not -path '*/target/*' -not -path './.venv/*' -not -path '*/node_modules/*' -not -path './.git/*' | sort)

echo "$checked links checked, $broken broken"
[ "$broken" -eq 0 ]
