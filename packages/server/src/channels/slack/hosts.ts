const ofSlack = /(?:^|\.)slack(?:-gov|-edge|-files)?\.com$/;

/** Returns whether an address belongs to Slack, or to the host that the configuration names: only these get a token or a file. */
export function isTrustedHost(address: string, apiUrl: string): boolean {
  const url = URL.parse(address);
  const api = URL.parse(apiUrl);
  if (url === null || api === null || url.username !== '' || url.password !== '') return false;
  return url.origin === api.origin || (url.protocol === 'https:' && (url.hostname === api.hostname || ofSlack.test(url.hostname)));
}
