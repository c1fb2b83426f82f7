/** What may be said of a URL: never its user, password, query or fragment. */

/** `redis://user:secret@host:6379/0?x=y` becomes `redis://***@host:6379/0`. */
export function redactUrl(url: string): string {
  const withoutQuery = url.replace(/[?#].*$/s, "");
  // Up to the last @: a password may hold unescaped slashes and at signs, and several hosts may follow each other.
  return withoutQuery.replace(/^([a-z][a-z0-9+.-]*:(?:\/\/)?)?(.*)@/is, (_all, scheme: string | undefined) => {
    return `${scheme ?? ""}***@`;
  });
}

/** `text` without the secret parts of `url`, in case an error of a client library repeats them. */
export function withoutSecrets(text: string, url: string): string {
  if (url === "" || redactUrl(url) === url) return text;
  return text.replaceAll(url, redactUrl(url));
}
