import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

export interface ClientAddress {
  /** Normalized address: IPv4-mapped forms folded, IPv6 in its canonical form. */
  readonly text: string;
  /** Key of rate limits: an IPv6 client owns its whole /64. */
  readonly key: string;
}

/**
 * Finds the client's address. `X-Forwarded-For` counts only when the peer is a trusted proxy, and then only the
 * right-most address that is not one: the client itself wrote everything to the left.
 */
export function createAddressOf(trustedProxies: readonly string[]): (incoming: IncomingMessage) => ClientAddress {
  const trusted = trustedProxies.map((text) => (text.includes('/') ? ipaddr.parseCIDR(text) : wholeAddress(text)));
  const isTrusted = (address: Address): boolean => trusted.some(([range, bits]) => range.kind() === address.kind() && address.match(range, bits));
  const known = new Map<string, ClientAddress>();

  function describe(text: string): ClientAddress {
    let address = known.get(text);
    if (address === undefined) {
      const parsed = parse(text);
      address = parsed === undefined ? { text: 'unknown', key: 'unknown' } : { text: parsed.toString(), key: keyOf(parsed) };
      if (known.size >= 1_000) known.clear();
      known.set(text, address);
    }
    return address;
  }

  return (incoming) => {
    const peer = incoming.socket.remoteAddress ?? '';
    const header = incoming.headers['x-forwarded-for'];
    if (header === undefined || trusted.length === 0) return describe(peer);
    let nearest = parse(peer);
    const hops = (typeof header === 'string' ? header : header.join(',')).split(',');
    while (nearest !== undefined && isTrusted(nearest)) {
      const hop = hops.pop();
      const next = hop === undefined ? undefined : parse(hop.trim());
      if (next === undefined) break;
      nearest = next;
    }
    return nearest === undefined ? describe(peer) : { text: nearest.toString(), key: keyOf(nearest) };
  };
}

/** True for a range that `createAddressOf` accepts as a trusted proxy. */
export function isAddressRange(text: string): boolean {
  return text.includes('/') ? ipaddr.isValidCIDR(text) : ipaddr.isValid(text);
}

function wholeAddress(text: string): [Address, number] {
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function parse(text: string): Address | undefined {
  const bare = text.replace(/%.*$/, '');
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined;
}

function keyOf(address: Address): string {
  return address.kind() === 'ipv4'
    ? address.toString()
    : `${(address as ipaddr.IPv6).parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`;
}
