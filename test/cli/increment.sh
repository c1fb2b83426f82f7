# Adds one to the number in $1/count, slowly enough to be caught in the act. The file holds the number and, one a line, the
# tokens under which it grew; it is replaced by rename, so a number without its token cannot be. $2: seconds of work.
# Nobody may run beside it: whoever does, or any process that a former one has left, holds the lock on $1/inside.
exec 9>>"$1/inside"
flock -n 9 || echo "$HOLDFAST_TOKEN" >>"$1/overlaps"
echo "begins $$ $HOLDFAST_TOKEN"
{
  read -r number
  tokens=$(cat)
} <"$1/count"
sleep "$2"
{
  echo $((number + 1))
  [ -z "$tokens" ] || echo "$tokens"
  echo "$HOLDFAST_TOKEN"
} >"$1/draft.$$"
mv "$1/draft.$$" "$1/count"
echo "done $HOLDFAST_TOKEN"
