const loopback: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

/**
 * Returns the address of a gateway when it may be connected to: the token is sent to it, so only over TLS, unless the API itself is on this machine
 * without TLS.
 */
export function checkedGatewayUrl(address: string, apiUrl: string): string | undefined {
  const url = URL.parse(address);
  if (url === null || url.username !== '' || url.password !== '') return undefined;
  const api = new URL(apiUrl);
  const isLocal = api.protocol === 'http:' && loopback.has(api.hostname) && loopback.has(url.hostname);
  if (url.protocol !== 'wss:' && !(url.protocol === 'ws:' && isLocal)) return undefined;
  return `${url.protocol}//${url.host}${url.pathname}`;
}
