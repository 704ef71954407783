import type { IncomingMessage } from 'node:http';
import { AppError } from '../kernel/app-error.ts';

export interface OriginPolicy {
  /** Throws `forbidden_origin` unless the request names a host that this server answers to (stops DNS rebinding). */
  checkHost(incoming: IncomingMessage): void;
  /**
   * Throws `forbidden_origin` for a request that a page of another site makes. Returns the origin that CORS headers must
   * name, undefined when none are needed.
   */
  checkOrigin(incoming: IncomingMessage): string | undefined;
}

export function createOriginPolicy(config: {
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}): OriginPolicy {
  const hosts = new Set([config.host, ...config.allowedHosts].map((host) => hostName(host)));
  const anyAddress = config.host === '0.0.0.0' || config.host === '::';
  const origins = new Set(config.corsOrigins.map((origin) => origin.toLowerCase().replace(/\/$/, '')));
  const accepted = new Set<string>();

  function answersTo(host: string): boolean {
    const name = hostName(host);
    // An address cannot be rebound; a name can.
    return hosts.has(name) || isLoopbackName(name) || (anyAddress && isAddress(name));
  }

  return {
    checkHost(incoming) {
      const host = incoming.headers.host ?? '';
      // Node takes the first of several; whatever stands in front of us may have taken another.
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
        if (incoming.headers['sec-fetch-site'] === 'cross-site')
          throw new AppError('forbidden_origin', 'Requests made by pages of other sites are refused');
        return undefined;
      }
      const own = /^https?:\/\/(.+)$/i.exec(origin)?.[1];
      if (own !== undefined && withoutDefaultPort(own) === withoutDefaultPort(incoming.headers.host ?? '')) return undefined;
      if (origins.has(origin.toLowerCase())) return origin;
      throw new AppError('forbidden_origin', 'The Origin of the request is not one of gateway.corsOrigins');
    },
  };
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
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^[0-9a-f:.]*:[0-9a-f:.]*$/.test(name);
}

function withoutDefaultPort(host: string): string {
  return host.toLowerCase().replace(/:(80|443)$/, '');
}
