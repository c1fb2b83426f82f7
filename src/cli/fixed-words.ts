/** The words that a command takes, where they are few and known. */
export const FIXED_WORDS: Readonly<Record<string, readonly string[]>> = {
  sql: ["mysql"],
  completion: ["bash", "zsh", "fish"],
};
