/** What may be said of a URL: never its user, password, query or fragment. */

/** `redis://user:secret@host:6379/0?x=y` becomes `redis://***@host:6379/0`. */
export function redactUrl(url: string): string {
  const withoutQuery = url.replace(/[?#].*$/s, "");
  // Up to the last @: a password may hold unescaped slashes and at signs, and several hosts may follow each other.
  return withoutQuery.replace(/^([a-z][a-z0-9+.-]*:(?:\/\/)?)?.*@/is, (_all, scheme: string | undefined) => {
    return `${scheme ?? ""}***@`;
  });
}

/** Shorter ones would also hit words that are no secrets. */
const SHORTEST_SECRET = 4;
const secrets = new Map<string, string>();

/** From now on `withoutSecrets` hides this URL, and the passwords in it. */
export function keepSecret(url: string): void {
  const shown = redactUrl(url);
  if (shown === url) return;
  secrets.set(url, shown);
  for (const [, password = ""] of url.matchAll(/:([^:@/]+)@/g)) {
    for (const form of [password, decoded(password)]) if (form.length >= SHORTEST_SECRET) secrets.set(form, "***");
  }
}

/** `text`, which may come from a client library, without what `keepSecret` was told. */
export function withoutSecrets(text: string): string {
  let clean = text;
  for (const [secret, shown] of secrets) clean = clean.replaceAll(secret, shown);
  return clean;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
