/** Returns the URL of a database without user, password and parameters. */
export function placeOf(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return 'postgres';
  }
}
