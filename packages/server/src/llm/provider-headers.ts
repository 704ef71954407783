import { anthropicVersion } from './anthropic-messages/client.ts';
import type { ProvidersConfig } from './config.ts';
import { vendors } from './vendors.ts';

/** Returns the headers of every request to a provider; those of the configuration win. Names are lower-case, so that none is sent twice. */
export function providerHeaders(config: ProvidersConfig[string]): Record<string, string> {
  const vendor = vendors[config.type];
  const key =
    config.apiKey === undefined ? {} : { [vendor.keyHeader]: vendor.keyHeader === 'authorization' ? `Bearer ${config.apiKey}` : config.apiKey };
  const own = Object.fromEntries(Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { ...(vendor.wire === 'anthropic-messages' ? anthropicVersion : {}), ...key, ...own };
}
