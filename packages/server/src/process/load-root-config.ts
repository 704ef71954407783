import { dirname } from 'node:path';
import { RootConfig } from '../config-schema.ts';
import { guessingBits } from '../features/access/tokens/guessing-bits.ts';
import { secretFault } from '../features/access/tokens/secret.ts';
import { presetNames } from '../features/unattended/webhooks/config.ts';
import { isEnabled } from '../features/unattended/webhooks/rules/rules.ts';
import { readTls } from '../gateway/tls.ts';
import { systemClock } from '../kernel/clock.ts';
import { ConfigError } from '../kernel/config/config-error.ts';
import type { SecretLookup } from '../kernel/config/configuration.ts';
import { type LoadedConfig, loadConfig, type Override } from '../kernel/config/load.ts';
import type { Environment } from '../kernel/config/references.ts';
import { vendors } from '../llm/vendors.ts';
import { asConfigError } from '../wiring/config-fault.ts';

/** Values from the command line; undefined where it has none. */
export interface StartFlags {
  readonly port?: number | undefined;
  readonly host?: string | undefined;
}

/** Id of the token from GATEHOUSE_TOKEN. */
const environmentTokenId = 'env';

/**
 * Loads config.yaml, then GATEHOUSE_PORT and GATEHOUSE_TOKEN, then the flags: later wins (decisions §9). Fails with a
 * ConfigError, also for conflicts between sections: a restart must find all of it before it stops anything.
 */
export function loadRootConfig(
  file: { readonly path: string; readonly text: string },
  env: Environment,
  flags: StartFlags,
  secrets?: SecretLookup,
): LoadedConfig<RootConfig> {
  const loaded = loadConfig({ schema: RootConfig, file: file.path, text: file.text, env, secrets, overrides: overridesFrom(env, flags) });
  checkConsistency(loaded, file.path);
  return withEnvironmentToken(loaded, env);
}

/**
 * Checks what concerns more than one section.
 * @throws ConfigError
 */
export function checkConsistency(loaded: LoadedConfig<RootConfig>, file: string): void {
  checkTokens(loaded);
  checkProviders(loaded);
  checkDefaultModel(loaded);
  checkTls(loaded, dirname(file));
  checkWebhooks(loaded);
}

function overridesFrom(env: Environment, flags: StartFlags): Override[] {
  const overrides: Override[] = [];
  const port = env['GATEHOUSE_PORT'];
  if (port !== undefined && port !== '')
    overrides.push({ path: ['gateway', 'port'], value: /^\d{1,9}$/.test(port) ? Number(port) : port, source: 'GATEHOUSE_PORT' });
  if (flags.port !== undefined) overrides.push({ path: ['gateway', 'port'], value: flags.port, source: '--port' });
  if (flags.host !== undefined) overrides.push({ path: ['gateway', 'host'], value: flags.host, source: '--host' });
  return overrides;
}

/** Refuses two entries with the same id or secret: it would be a matter of luck which scopes a caller has. */
function checkTokens({ config, errorAt }: LoadedConfig<RootConfig>): void {
  const { tokens } = config.gateway;
  for (const [index, token] of tokens.entries()) {
    const fault = secretFault(token.secret);
    if (fault !== undefined) throw errorAt(['gateway', 'tokens', index, 'secret'], fault);
    const weakness = weaknessOf(token.secret, config.gateway);
    if (weakness !== undefined) throw errorAt(['gateway', 'tokens', index, 'secret'], weakness);
    if (token.person !== undefined && token.budgets !== undefined)
      throw errorAt(
        ['gateway', 'tokens', index, 'budgets'],
        `expected none for a token of a person; its budgets are persons.${token.person}.budgets`,
      );
    for (const field of ['id', 'secret'] as const) {
      const earlier = tokens.findIndex((other) => other[field] === token[field]);
      if (earlier < index)
        throw errorAt(['gateway', 'tokens', index, field], `is the same as that of gateway.tokens[${earlier}]; each token needs its own`);
    }
  }
}

function checkProviders({ config, errorAt }: LoadedConfig<RootConfig>): void {
  for (const [id, provider] of Object.entries(config.providers)) {
    if (provider.baseUrl === undefined && vendors[provider.type].baseUrl === undefined)
      throw errorAt(['providers', id, 'baseUrl'], `is missing; expected the address of the API, because type "${provider.type}" has no default`);
  }
  const embedder = config.embedding?.provider;
  if (embedder === undefined || embedder === 'hashing') return;
  if (config.providers[embedder] === undefined)
    throw errorAt(
      ['embedding', 'provider'],
      `expected "hashing" or one of section providers (${Object.keys(config.providers).join(', ') || 'which is empty'})`,
    );
  const vendor = vendors[config.providers[embedder].type];
  if (vendor.embeddings === 'none') throw errorAt(['embedding', 'provider'], `${vendor.name} offers no embeddings`);
}

/** Refuses a default model that no provider lists; one that lists none is asked, or has those of a table. */
function checkDefaultModel({ config: { providers, models }, errorAt }: LoadedConfig<RootConfig>): void {
  const listed = Object.entries(providers).map(([id, provider]) => provider.models.flatMap((model) => [model.id, `${id}/${model.id}`]));
  if (models.default === undefined || listed.length === 0 || listed.some((names) => names.length === 0)) return;
  if (!listed.some((names) => names.includes(models.default ?? '')))
    throw errorAt(['models', 'default'], `expected a model of the catalog, got ${JSON.stringify(models.default)}`);
}

/** Refuses an agent that anybody who reaches the port can start: nobody should get that by omitting a line. */
function checkWebhooks({ config: { gateway, webhooks }, errorAt }: LoadedConfig<RootConfig>): void {
  if (!gateway.enabled || webhooks.token !== undefined || !isEnabled(webhooks) || isLoopback(gateway.host)) return;
  const danger = `others can reach ${gateway.host}`;
  const open = webhooks.mappings.findIndex(({ secret, allowUnauthenticated }) => secret === undefined && !allowUnauthenticated);
  if (open !== -1)
    throw errorAt(
      ['webhooks', 'mappings', open],
      `accepts requests from anybody: ${danger}, and neither its secret nor webhooks.token is set; set one, or allowUnauthenticated: true`,
    );
  const preset = webhooks.presets.findIndex((name) => presetNames.some((known) => known === name));
  if (preset !== -1) throw errorAt(['webhooks', 'presets', preset], `accepts requests from anybody: ${danger}; set webhooks.token`);
}

/** A caller that reaches the port may guess at any speed that the machine allows. */
function weaknessOf(secret: string, { enabled, host }: RootConfig['gateway']): string | undefined {
  if (!enabled || isLoopback(host) || guessingBits(secret) >= leastBits) return undefined;
  return `is too easy to guess for a gateway that others can reach (${host}): choose a random one of 128 bits, such as "openssl rand -base64 32" prints`;
}

const leastBits = 128;

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host);

/** Reports an unusable certificate before anything is stopped or started. */
function checkTls(loaded: LoadedConfig<RootConfig>, homeDir: string): void {
  const { tls, enabled } = loaded.config.gateway;
  if (tls === undefined || !enabled) return;
  try {
    readTls(tls, homeDir, systemClock.now());
  } catch (error) {
    throw asConfigError(error, loaded) ?? error;
  }
}

/**
 * Adds GATEHOUSE_TOKEN as the first token, with scope `*`. If config.yaml has an entry with the same secret,
 * nothing is added: the file may narrow what the variable grants.
 */
function withEnvironmentToken(loaded: LoadedConfig<RootConfig>, env: Environment): LoadedConfig<RootConfig> {
  const secret = env['GATEHOUSE_TOKEN'];
  const { tokens } = loaded.config.gateway;
  if (secret === undefined || secret === '') return loaded;
  const wrong = (message: string) => new ConfigError([{ source: 'GATEHOUSE_TOKEN', message }]);
  const fault = secretFault(secret);
  if (fault !== undefined) throw wrong(fault);
  const weakness = weaknessOf(secret, loaded.config.gateway);
  if (weakness !== undefined) throw wrong(weakness);
  if (/\s/.test(secret)) throw wrong('expected a token without spaces or line ends');
  if (tokens.some((token) => token.secret === secret)) return loaded;
  if (tokens.some((token) => token.id === environmentTokenId))
    throw wrong(`config.yaml has another token of id "${environmentTokenId}"; give that one another id`);
  const gateway = { ...loaded.config.gateway, tokens: [{ id: environmentTokenId, secret, scopes: ['*' as const] }, ...tokens] };
  return { ...loaded, config: { ...loaded.config, gateway }, secrets: [...loaded.secrets, secret] };
}
