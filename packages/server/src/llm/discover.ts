import { get as getHttp } from 'node:http';
import { once, type ProviderType, providerTypes } from '@gatehouse/contract';
import * as z from 'zod';
import type { Log } from '../kernel/log.ts';
import type { ProviderConfig } from './config.ts';
import { providerHeaders } from './provider-headers.ts';
import { keyValues, type ProviderKeys, providerKeys } from './provider-keys.ts';
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

export interface ListedModel {
  readonly id: string;
  readonly contextWindow?: number;
}

/** Fetches a JSON document from a local address; rejects when nothing answers before the signal. */
export type Probe = (url: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<unknown>;

/** Total time for finding local servers; startup waits for it only when nothing is configured. */
const probeLimitMs = 300;
const maxListBytes = 1_048_576;

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
      const listed = await listModels(probe, baseUrl, {}, signal);
      if (listed.length === 0) return undefined;
      return { id: type, config, source: 'local_server', from: new URL(baseUrl).origin, keys: providerKeys(config, () => ''), listed };
    }),
  );
  return found.filter((provider) => provider !== undefined);
}

/** Asks a configured local server for its models, when the configuration names none. */
export async function listConfigured(config: ProviderConfig, probe: Probe): Promise<readonly ListedModel[]> {
  const baseUrl = config.baseUrl ?? vendors[config.type].baseUrl;
  if (baseUrl === undefined || !/^http:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])[:/]/.test(baseUrl)) return [];
  return listModels(probe, baseUrl, providerHeaders(config, keyValues(config)[0]?.value), AbortSignal.timeout(probeLimitMs));
}

const List = once(() =>
  z.object({
    data: z.array(
      z.object({
        id: z.string().min(1),
        max_model_len: z.int().min(512).optional().catch(undefined),
        meta: z
          .object({ n_ctx: z.int().min(512).optional() })
          .nullish()
          .catch(undefined),
      }),
    ),
  }),
);

/** Requests the models of a server; empty when it does not list any. */
export async function listModels(
  probe: Probe,
  baseUrl: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<readonly ListedModel[]> {
  try {
    const { data } = List().parse(await probe(`${baseUrl.replace(/\/+$/, '')}/models`, headers, signal));
    return data
      .filter(({ id }) => !/embed|rerank|whisper|tts/i.test(id))
      .map(({ id, max_model_len: length, meta }) => {
        const contextWindow = length ?? meta?.n_ctx;
        return contextWindow === undefined ? { id } : { id, contextWindow };
      });
  } catch {
    // Nothing there, another service, or too slow: all mean that no model server was found.
    return [];
  }
}

/** The probe of the running server: one small GET, no redirect, at most 1 MiB. */
export const probeHttp: Probe = async (url, headers, signal) => {
  // Local servers have no certificates.
  const get = url.startsWith('https:') ? (await import('node:https')).get : getHttp;
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, signal, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxListBytes) request.destroy(new Error('list of models larger than 1 MiB'));
        else chunks.push(chunk);
      });
      response.on('error', reject);
      response.on('end', () => {
        try {
          resolve(response.statusCode === 200 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined);
        } catch (error) {
          reject(error);
        }
      });
    });
    request.on('error', reject);
  });
};
