import { get as getHttp } from 'node:http';
import { type ProviderType, providerTypes } from '@gatehouse/contract';
import type { Log } from '../kernel/log.ts';
import type { ProviderConfig } from './config.ts';
import { providerHeaders } from './provider-headers.ts';
import { keyValues, type ProviderKeys, providerKeys } from './provider-keys.ts';
import { type ListedModel, readModels } from './read-models.ts';
import { vendors } from './vendors.ts';

/** A provider for the catalog, wherever it was found. */
export interface FoundProvider {
  readonly id: string;
  /** Its entry in the configuration. */
  readonly given?: ProviderConfig;
  readonly config: ProviderConfig;
  readonly source: 'config' | 'environment' | 'local_server';
  /** Source of its key or address, for people: `config.yaml`, `OPENAI_API_KEY`, `http://127.0.0.1:11434`. */
  readonly from: string;
  readonly keys: ProviderKeys;
  /** Models that the server listed itself. */
  readonly listed?: readonly ListedModel[];
}

/** Fetches a JSON document; rejects when there is none, or nothing answers before the signal. */
export type Probe = (url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<unknown>;

/** Total time for finding local servers; startup waits for it only when nothing is configured. */
const probeLimitMs = 300;
const maxListBytes = 4_194_304;

type Environment = Readonly<Record<string, string | undefined>>;

/** Finds keys that the vendors' tools use too, in the order in which a default is chosen. */
export function findKeys(env: Environment, log: Log): readonly FoundProvider[] {
  const order: readonly ProviderType[] = ['openai', 'anthropic', 'google', 'groq', 'mistral', 'openrouter', 'xai', 'deepseek', ...providerTypes];
  return [...new Set(order)].flatMap((type) => {
    const vendor = vendors[type];
    const keyName = vendor.keyEnv.find((name) => (env[name] ?? '').trim() !== '');
    if (keyName === undefined) return [];
    const baseUrl = baseUrlFromEnv(type, env);
    if (baseUrl === null) log.warn({}, `${keyName} is not used: ${vendor.baseUrlEnv} must begin with http:// or https://`);
    if (baseUrl === undefined || baseUrl === null) return [];
    const config = { type, baseUrl, apiKey: (env[keyName] ?? '').trim(), headers: {}, models: [], maxConnections: 256, fastStreams: true };
    return [{ id: type, config, source: 'environment' as const, from: keyName, keys: providerKeys(config, () => keyName) }];
  });
}

/** Returns an overridden base URL. An invalid one (null) is not ignored: the key may be meant for a proxy only. */
function baseUrlFromEnv(type: ProviderType, env: Environment): string | null | undefined {
  const vendor = vendors[type];
  const value = vendor.baseUrlEnv === undefined ? undefined : env[vendor.baseUrlEnv]?.trim();
  if (value === undefined || value === '') return vendor.baseUrl;
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return null;
  const base = value.replace(/\/+$/, '');
  return vendor.wire === 'anthropic-messages' && !base.endsWith('/v1') ? `${base}/v1` : base;
}

/** Finds model servers on their standard ports of this machine that answer within 300 ms and have a model. */
export async function findLocalServers(probe: Probe): Promise<readonly FoundProvider[]> {
  const signal = AbortSignal.timeout(probeLimitMs);
  const found = await Promise.all(
    providerTypes.map(async (type): Promise<FoundProvider | undefined> => {
      const { local, baseUrl } = vendors[type];
      if (local === undefined || baseUrl === undefined) return undefined;
      const config: ProviderConfig = { type, baseUrl, headers: {}, models: [], maxConnections: 256, fastStreams: true };
      const listed = await listModels(config, undefined, probe, signal);
      if (listed.length === 0) return undefined;
      return { id: type, config, source: 'local_server', from: new URL(baseUrl).origin, keys: providerKeys(config, () => ''), listed };
    }),
  );
  return found.filter((provider) => provider !== undefined);
}

/** Asks a configured local server for its models, when the configuration names none. */
export async function listConfigured(config: ProviderConfig, probe: Probe): Promise<readonly ListedModel[]> {
  const baseUrl = config.baseUrl ?? vendors[config.type].baseUrl;
  if (baseUrl === undefined || !isLoopback(baseUrl)) return [];
  return listModels({ ...config, baseUrl }, keyValues(config)[0]?.value, probe, AbortSignal.timeout(probeLimitMs));
}

export function isLoopback(baseUrl: string): boolean {
  return /^http:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])[:/]/.test(baseUrl);
}

/**
 * Requests the models that a provider lists for a key; empty for a vendor that lists none.
 * @throws an error that says why there is no list
 */
export async function requestModels(
  config: ProviderConfig,
  key: string | undefined,
  probe: Probe,
  signal: AbortSignal,
): Promise<readonly ListedModel[]> {
  const { modelsPath = '/models' } = vendors[config.type];
  if (modelsPath === null) return [];
  return readModels(await probe(`${(config.baseUrl ?? '').replace(/\/+$/, '')}${modelsPath}`, providerHeaders(config, key), signal));
}

/** Requests the models that a provider lists; empty when it does not list any. */
export async function listModels(
  config: ProviderConfig,
  key: string | undefined,
  probe: Probe,
  signal: AbortSignal,
): Promise<readonly ListedModel[]> {
  try {
    return await requestModels(config, key, probe, signal);
  } catch {
    // Nothing there, another service, or too slow: all mean that no model server was found.
    return [];
  }
}

/** The probe of the running server: one small GET, no redirect, at most 4 MiB. */
export const probeHttp: Probe = async (url, headers, signal) => {
  // Local servers have no certificates.
  const get = url.startsWith('https:') ? (await import('node:https')).get : getHttp;
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, signal, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxListBytes) request.destroy(new Error('the list of models is larger than 4 MiB'));
        else chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () => {
        try {
          if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
          resolve(JSON.parse(Buffer.concat(chunks).toString()));
        } catch (error) {
          reject(error);
        }
      });
    });
    request.on('error', reject);
  });
};
