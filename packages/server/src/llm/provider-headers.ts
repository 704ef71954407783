import { anthropicVersion } from './anthropic-messages/client.ts';
import type { ProvidersConfig } from './config.ts';
import { vendors } from './vendors.ts';

/**
 * Returns the headers of every request to a provider with one of its keys; those of the configuration win. Names are lower-case, so that
 * none is sent twice.
 */
export function providerHeaders(config: ProvidersConfig[string], key: string | undefined): Record<string, string> {
  const vendor = vendors[config.type];
  const withKey = key === undefined ? {} : { [vendor.keyHeader]: vendor.keyHeader === 'authorization' ? `Bearer ${key}` : key };
  const own = Object.fromEntries(Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { ...(vendor.wire === 'anthropic-messages' ? anthropicVersion : {}), ...withKey, ...own };
}
