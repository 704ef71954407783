import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { buildConnector } from 'undici';
import { AppError } from './app-error.ts';
import { isPublicAddress } from './public-address.ts';

export interface DialRules {
  /** Ports that may be dialled; a request must not reach a mail server or a database. */
  readonly ports?: readonly number[];
  readonly resolve?: (hostname: string) => Promise<readonly string[]>;
  /** `address:port` pairs, as dialled, that are reached although they are not public; for test servers on the loopback. */
  readonly allowAddresses?: readonly string[];
  /** `name:port` pairs from the operator's configuration: dialled wherever they resolve to. */
  readonly allowHosts?: readonly string[];
}

/**
 * Connects to a host name after checking each of its addresses, and dials the checked address itself, so that the name
 * cannot resolve to another one in between. Fails with `denied` or `unavailable`.
 */
export interface CheckedDial {
  /** `build` is undici's function; the caller loads undici when it needs it. */
  connector(build: typeof buildConnector, timeoutMs: number): buildConnector.connector;
}

const maxDialledAddresses = 3;

export function createCheckedDial(rules: DialRules): CheckedDial {
  const ports = new Set(rules.ports ?? [80, 443, 8080, 8443]);
  const allowed = new Set(rules.allowAddresses ?? []);
  const allowedHosts = new Set(rules.allowHosts ?? []);
  const resolve = rules.resolve ?? resolveByDns;

  /** The addresses to dial, all of them checked: one private address among public ones is how rebinding begins. */
  async function addressesOf(hostname: string, port: number): Promise<readonly string[]> {
    const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    const addresses = isIP(literal) === 0 ? await resolve(literal) : [literal];
    if (addresses.length === 0) throw new AppError('unavailable', `The host ${hostname} was not found`);
    for (const address of allowedHosts.has(`${hostname}:${port}`) ? [] : addresses) {
      const dialled = isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
      if (allowed.has(dialled)) continue;
      if (!ports.has(port)) throw new AppError('denied', `Port ${port} is not allowed`);
      if (!isPublicAddress(address)) throw new AppError('denied', `The address of ${hostname} is not public`);
    }
    return addresses.slice(0, maxDialledAddresses);
  }

  return {
    connector(build, timeoutMs) {
      const dial = build({ timeout: timeoutMs, allowH2: false });
      return (target, callback) => {
        // Port 0 is a port: were it taken for "none", the default port would be dialled unchecked.
        const port = target.port === '' ? defaultPort(target.protocol) : Number(target.port);
        addressesOf(target.hostname, port).then(
          (addresses) => dialFirst(dial, target, addresses, callback),
          (error: unknown) => callback(error instanceof Error ? error : new Error('refused'), null),
        );
      };
    },
  };
}

function defaultPort(protocol: string): number {
  return protocol === 'https:' ? 443 : 80;
}

async function resolveByDns(hostname: string): Promise<readonly string[]> {
  const found: LookupAddress[] = await lookup(hostname, { all: true, order: 'ipv4first' });
  return found.map((each) => each.address);
}

/** Dials the addresses one after the other, under the name that the caller asked for (SNI, certificate, Host). */
function dialFirst(
  dial: buildConnector.connector,
  target: buildConnector.Options,
  addresses: readonly string[],
  callback: buildConnector.Callback,
): void {
  const [address, ...rest] = addresses;
  if (address === undefined) throw new RangeError('no address');
  dial({ ...target, hostname: address }, (...answer) => {
    if (answer[0] !== null && rest.length > 0) dialFirst(dial, target, rest, callback);
    else callback(...answer);
  });
}
