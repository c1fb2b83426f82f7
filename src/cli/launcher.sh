# Waits until holdfast holds the lock, then becomes COMMAND: same process, so its id can be known before the lock is asked for.
# Descriptor 3: two lines, the token and HOLDFAST_HELD; the end of file instead means that there is nothing to run.
# Arguments: COMMAND [ARG...]. $0 is "holdfast", so that the shell's own message reads like ours when exec fails.
IFS= read -r HOLDFAST_TOKEN <&3 || exit 125
IFS= read -r HOLDFAST_HELD <&3 || exit 125
export HOLDFAST_TOKEN HOLDFAST_HELD
exec 3<&-
exec "$@"
