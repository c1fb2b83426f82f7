/** Completion for zsh. */
import { COMMANDS, type CommandSpec, optionsOf, type OptionSpec } from "./commands.ts";
import { FIXED_WORDS } from "./fixed-words.ts";

/** Inside single quotes of the shell. */
const quoted = (text: string): string => text.replaceAll("'", `'\\''`);
/** Inside the brackets and between the colons of _arguments. */
const described = (text: string): string => quoted(text.replaceAll(/[[\]:\\]/g, "\\$&"));

export function zshCompletion(): string {
  const names = COMMANDS.map(({ name, summary }) => `      '${name}:${described(summary)}'`);
  const cases = COMMANDS.map((command) => `    ${command.name})\n      _arguments \\\n${specs(command)} ;;`);
  return `#compdef holdfast
# zsh completion for holdfast: as a file _holdfast in a folder of $fpath, or: . <(holdfast completion zsh)
_holdfast() {
  local curcontext=$curcontext state line
  _arguments -C '1: :->command' '*:: :->rest'
  if [[ $state == command ]]; then
    local -a commands=(
${names.join("\n")}
    )
    _describe command commands
    return
  fi
  # Behind the -- COMMAND is completed as it would be without us.
  local dashes=$words[(i)--]
  if (( dashes < CURRENT )); then
    shift $dashes words
    (( CURRENT -= dashes ))
    _normal
    return
  fi
  case $words[1] in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = _holdfast ]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
`;
}

function specs(command: CommandSpec): string {
  const fixed = FIXED_WORDS[command.name];
  const first = fixed === undefined ? "1:name:" : `1:word:(${fixed.join(" ")})`;
  return [...optionsOf(command).map(spec), `'${first}'`].map((each) => `        ${each}`).join(" \\\n");
}

function spec({ short, long, argument, help }: OptionSpec): string {
  const what =
    argument === undefined ? "" : `:${quoted(argument.replaceAll("'", ""))}:${argument === "FILE" ? "_files" : ""}`;
  const text = `[${described(help)}]`;
  if (short === undefined) return `'--${long}${argument === undefined ? "" : "="}${text}${what}'`;
  const forms = `{-${short}${argument === undefined ? "" : "+"},--${long}${argument === undefined ? "" : "="}}`;
  return `'(-${short} --${long})'${forms}'${text}${what}'`;
}
