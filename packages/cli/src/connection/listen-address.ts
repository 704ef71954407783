/** The listener settings from `config.yaml` that the command needs. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** True for HTTPS. */
  readonly secure: boolean;
}

const defaults = { host: '127.0.0.1', port: 4766 };

/**
 * Reads `gateway.host`, `gateway.port` and the presence of `gateway.tls` from `config.yaml`, in block or flow form. The daemon has the real
 * parser; this one only finds three keys and uses defaults for anything it does not understand.
 */
export function readListenAddress(yaml: string, env: Readonly<Record<string, string | undefined>>): ListenAddress {
  const section = gatewaySection(yaml);
  const port = Number(scalar(section, 'port', env));
  return {
    host: scalar(section, 'host', env) ?? defaults.host,
    port: Number.isInteger(port) && port > 0 ? port : defaults.port,
    secure: section.some((line) => /^["']?tls["']?\s*:/.test(line)),
  };
}

/** Returns the lines of the section at its own indentation only, to exclude nested keys such as another `port`. */
function gatewaySection(yaml: string): string[] {
  const lines = yaml.split(/\r?\n/).filter((line) => !/^\s*(#|$)/.test(line));
  const start = lines.findIndex((line) => /^gateway\s*:/.test(line));
  if (start === -1) return [];
  const flow = /^gateway\s*:\s*\{(.*)\}/.exec(lines[start] ?? '')?.[1];
  if (flow !== undefined) return flow.split(',').map((entry) => entry.trim());
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => /^\S/.test(line));
  const inside = end === -1 ? rest : rest.slice(0, end);
  const indent = /^\s*/.exec(inside[0] ?? '')?.[0] ?? '';
  return inside.filter((line) => line.startsWith(indent) && !/^\s/.test(line.slice(indent.length))).map((line) => line.trim());
}

function scalar(section: readonly string[], key: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  for (const line of section) {
    const match = /^["']?([A-Za-z]+)["']?\s*:\s*(?:"([^"]*)"|'([^']*)'|([^\s#]+))/.exec(line);
    if (match?.[1] !== key) continue;
    return (match[2] ?? match[3] ?? match[4])?.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => env[name] ?? '');
  }
  return undefined;
}

/** Returns the URL of the listener; a listener on all addresses is reached over loopback. */
export function toUrl({ host, port, secure }: ListenAddress): string {
  const scheme = secure ? 'https' : 'http';
  if (host === '0.0.0.0') return `${scheme}://127.0.0.1:${port}`;
  if (host === '::') return `${scheme}://[::1]:${port}`;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
