/** Completion for bash, 3.2 (macOS) and later. */
import { COMMANDS, optionsOf, type OptionSpec } from "./commands.ts";
import { FIXED_WORDS } from "./fixed-words.ts";

const flags = ({ short, long }: OptionSpec): string[] => [...(short === undefined ? [] : [`-${short}`]), `--${long}`];

export function bashCompletion(): string {
  const all = COMMANDS.flatMap(optionsOf);
  const withArgument = all.filter(({ argument }) => argument !== undefined && argument !== "FILE").flatMap(flags);
  const withFile = all.filter(({ argument }) => argument === "FILE").flatMap(flags);
  const words = COMMANDS.map((command) => {
    const fixed = FIXED_WORDS[command.name] ?? [];
    return `    ${command.name}) words='${[...fixed, ...optionsOf(command).flatMap(flags)].join("\n")}' ;;`;
  });
  return `# bash completion for holdfast: . <(holdfast completion bash)
_holdfast() {
  local IFS=$'\\n' current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} words='' at
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${COMMANDS.map(({ name }) => name).join("\n")}' -- "$current"))
    return
  fi
  for ((at = 2; at < COMP_CWORD; at++)); do
    [ "\${COMP_WORDS[at]}" = -- ] || continue
    if declare -F _command_offset >/dev/null; then
      unset IFS
      _command_offset $((at + 1))
    elif [ "$at" -eq $((COMP_CWORD - 1)) ]; then
      COMPREPLY=($(compgen -c -- "$current"))
    else
      COMPREPLY=($(compgen -f -- "$current"))
    fi
    return
  done
  case $previous in
    ${[...new Set(withFile)].join(" | ")}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${[...new Set(withArgument)].join(" | ")}) return ;;
  esac
  case \${COMP_WORDS[1]} in
${words.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _holdfast holdfast
`;
}
