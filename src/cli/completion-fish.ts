/** Completion for fish. */
import { COMMANDS, optionsOf, type OptionSpec } from "./commands.ts";
import { FIXED_WORDS } from "./fixed-words.ts";

const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, "\\$&")}'`;

export function fishCompletion(): string {
  const lines = COMMANDS.flatMap((command) => {
    const inside = `__holdfast_in ${command.name}`;
    const fixed = FIXED_WORDS[command.name];
    return [
      `complete -c holdfast -n '__holdfast_in ""' -a ${command.name} -d ${quoted(command.summary)}`,
      ...optionsOf(command).map((option) => `complete -c holdfast -n '${inside}' ${optionLine(option)}`),
      ...(fixed === undefined ? [] : [`complete -c holdfast -n '${inside}' -a ${quoted(fixed.join(" "))}`]),
    ];
  });
  return `# fish completion for holdfast: holdfast completion fish > ~/.config/fish/completions/holdfast.fish
function __holdfast_in -d 'Whether the command is $argv[1] and COMMAND has not begun'
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    test "$words[2]" = "$argv[1]"
end
function __holdfast_command -d 'Completes COMMAND as it would be without us'
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return
    set -e words[1..$at]
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c holdfast -f
complete -c holdfast -n 'contains -- -- (commandline -opc)' -a '(__holdfast_command)'
${lines.join("\n")}
`;
}

function optionLine({ short, long, argument, help }: OptionSpec): string {
  const needs = argument === undefined ? "" : argument === "FILE" ? " -r -F" : " -x";
  return `${short === undefined ? "" : `-s ${short} `}-l ${long}${needs} -d ${quoted(help)}`;
}
