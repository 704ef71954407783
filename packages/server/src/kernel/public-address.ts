import ipaddr from 'ipaddr.js';

/** Public by number, but served by the machine's own cloud host. */
const hostServices = new Set(['168.63.129.16']);
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * True for a plain global unicast address, in the one spelling that resolvers and WHATWG URLs produce (`127.1` and the
 * like are not addresses here). Positive logic: what has no reason to be public is not. An address that embeds an
 * IPv4 one counts as that one where the network really translates it (mapped, NAT64); 6to4, Teredo, IPv4-compatible
 * and local NAT64 forms are refused whatever they embed.
 */
export function isPublicAddress(text: string): boolean {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return isPublicIPv4(ipaddr.IPv4.parse(text));
  // Normalized: ipaddr.js takes the dotted form of an IPv4-compatible address for a mapped one.
  const spelled = text.includes(':') ? URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1) : undefined;
  if (spelled === undefined) return false;
  const address = ipaddr.IPv6.parse(spelled);
  const range = address.range();
  if (range === 'ipv4Mapped') return isPublicIPv4(address.toIPv4Address());
  if (range === 'rfc6052') return address.parts[2] === 0 && isPublicIPv4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  return range === 'unicast' && address.match(globalUnicast);
}

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === 'unicast' && !hostServices.has(address.toString());
}
