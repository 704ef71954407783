import type { IncomingMessage } from 'node:http';
import { AppError } from '../kernel/app-error.ts';
import { authorityOf } from './http-call.ts';

export interface OriginPolicy {
  /** Throws `forbidden_origin` unless the request names a host of this server (stops DNS rebinding). */
  checkHost(incoming: IncomingMessage): void;
  /**
   * Throws `forbidden_origin` for a request made by a page of another site. Returns the origin that CORS headers must
   * name, undefined when none are needed.
   */
  checkOrigin(incoming: IncomingMessage): string | undefined;
}

export function createOriginPolicy(config: {
  readonly host: string;
  /** When set, pages of the same host count as own ones only over https. */
  readonly tls?: object | undefined;
  readonly publicUrl?: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}): OriginPolicy {
  const publicHosts = config.publicUrl === undefined ? [] : [new URL(config.publicUrl).host];
  const hosts = new Set([config.host, ...publicHosts, ...config.allowedHosts].map((host) => hostName(host)));
  const anyAddress = config.host === '0.0.0.0' || config.host === '::';
  const origins = new Set(config.corsOrigins.map((origin) => origin.toLowerCase().replace(/\/$/, '')));
  const ownOrigin = config.tls === undefined ? /^https?:\/\/(.+)$/i : /^https:\/\/(.+)$/i;
  const accepted = new Set<string>();

  function answersTo(host: string): boolean {
    const name = hostName(host);
    // An address cannot be rebound; a name can.
    return hosts.has(name) || isLoopbackName(name) || (anyAddress && isAddress(name));
  }

  return {
    checkHost(incoming) {
      const host = authorityOf(incoming);
      // Node uses the first of several; a proxy in front may have used another.
      const count = hostCount(incoming.rawHeaders);
      if (count > 1 || (count === 0 && incoming.httpVersion === '1.1')) throw new AppError('invalid_envelope', 'A request must name one Host');
      if (accepted.has(host)) return;
      if (!answersTo(host))
        throw new AppError(
          'forbidden_origin',
          'This server does not answer to the Host of the request; add it to gateway.allowedHosts when it is yours',
        );
      if (accepted.size < 256) accepted.add(host);
    },
    checkOrigin(incoming) {
      const { origin } = incoming.headers;
      if (origin === undefined) {
        if (!isOwnPage(incoming.headers['sec-fetch-site']) && !isFollowedLink(incoming))
          throw new AppError('forbidden_origin', 'Requests made by pages of other sites are refused');
        return undefined;
      }
      const own = ownOrigin.exec(origin)?.[1];
      if (own !== undefined && withoutDefaultPort(own) === withoutDefaultPort(authorityOf(incoming))) return undefined;
      if (origins.has(origin.toLowerCase())) return origin;
      throw new AppError('forbidden_origin', 'The Origin of the request is not one of gateway.corsOrigins');
    },
  };
}

/** True when browsers would send this for the origin's own page or a person, or without a browser. Another local port is `same-site`: foreign. */
function isOwnPage(fetchSite: string | string[] | undefined): boolean {
  return fetchSite === undefined || fetchSite === 'same-origin' || fetchSite === 'none';
}

/** A link on another site that a person follows: the page sees nothing of the response, and no browser adds a token to it. */
function isFollowedLink({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
}

/** True when the request names this machine itself, as `localhost` or by a loopback address. */
export function namesLoopback(incoming: IncomingMessage): boolean {
  return isLoopbackName(hostName(authorityOf(incoming)));
}

function hostCount(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') count += 1;
  return count;
}

/** Lower case, without port, brackets and final dot. */
function hostName(host: string): string {
  const bracketed = /^\[([^\]]+)\](:\d*)?$/.exec(host)?.[1];
  const name = bracketed ?? (host.split(':').length === 2 ? host.slice(0, host.indexOf(':')) : host);
  return name.toLowerCase().replace(/\.$/, '');
}

function isLoopbackName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

function isAddress(name: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^[0-9a-f.]*:[0-9a-f:.]*$/.test(name);
}

function withoutDefaultPort(host: string): string {
  return host.toLowerCase().replace(/:(80|443)$/, '');
}
