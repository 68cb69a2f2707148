#!/bin/sh
# hands each record to ./charge, until one fails
while IFS= read -r line; do
	id=${line#*'"id":"'}
	id=${id%%'"'*}
	if ! printf '%s\n' "$line" | ./charge 3>&-; then
		echo '{"id":"'"$id"'","result":"failed"}' >&3
		break
	fi
	echo '{"id":"'"$id"'","result":"done"}' >&3
done
echo '{"end":true}' >&3
