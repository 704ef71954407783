import { AppError } from '../kernel/app-error.ts';
import type { GatewayConfig } from './config.ts';

/** Returns the address of the gateway for browsers, without a trailing slash. Fails with `precondition_failed` when it has none. */
export function publicUrl({ publicUrl: configured }: Pick<GatewayConfig, 'publicUrl'>, address: string | null): string {
  if (configured !== undefined) return configured.replace(/\/$/, '');
  if (address === null)
    throw new AppError('precondition_failed', 'The gateway has no address for browsers: set gateway.publicUrl, or gateway.enabled to true');
  const url = new URL(address);
  // A browser cannot open the wildcard address.
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  return url.origin;
}
