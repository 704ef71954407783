import type { Clock } from '../../../../kernel/clock.ts';
import type { Egress } from '../../../../kernel/egress.ts';
import type { ProvidersConfig } from '../../../../llm/config.ts';
import type { ProviderKeys } from '../../../../llm/provider-keys.ts';

/** An entry of a list of providers, as the configuration has it. */
export interface ProviderEntry {
  readonly type: string;
  readonly apiKey?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
}

/** Facts about a vendor that each wire has. */
export interface VendorRow {
  /** Undefined: every installation has its own, or none. */
  readonly baseUrl?: string;
  readonly keyEnv: readonly string[];
  readonly model: string;
  /** It works without a key. */
  readonly keyless?: true;
}

/** A provider that can be asked. */
export interface Provider<Entry extends ProviderEntry = ProviderEntry> {
  /** Name under which it is shown and charged: its type, with a number when there are several. */
  readonly name: string;
  readonly entry: Entry;
  readonly baseUrl: string;
  readonly key: string | undefined;
  readonly keys: ProviderKeys;
  readonly model: string;
  readonly egress: Pick<Egress, 'request'>;
  readonly nowMs: () => number;
  /** What is missing before it can be asked. */
  readonly missing: string | undefined;
}

export interface ResolveDeps {
  readonly clock: Clock;
  /** Environment variables, with stored secrets. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly modelProviders: ProvidersConfig;
  /** Sends requests to public addresses, and to the named `host:port` pairs wherever they are. */
  readonly egressFor: (allowHosts: readonly string[]) => Pick<Egress, 'request'>;
}

/** Completes the entries of a list: names, keys, addresses and models. */
export function resolveProviders<Entry extends ProviderEntry>(
  section: string,
  entries: readonly Entry[],
  rows: Readonly<Record<Entry['type'], VendorRow>>,
  { clock, env, modelProviders, egressFor }: ResolveDeps,
): readonly Provider<Entry>[] {
  const names = new Map<string, number>();
  return entries.map((entry, at) => {
    const row = rows[entry.type as Entry['type']];
    const nth = (names.get(entry.type) ?? 0) + 1;
    names.set(entry.type, nth);
    const own = Object.values(modelProviders).find(({ type }) => type === entry.type && entry.type !== 'openai-compatible');
    // The key of a vendor goes to the vendor's own address only, or to the one that was configured with it.
    const isOwnAddress = entry.baseUrl === undefined || entry.baseUrl === own?.baseUrl;
    const key = entry.apiKey ?? (isOwnAddress ? (own?.apiKey ?? keyIn(row.keyEnv, env)) : undefined);
    const baseUrl = (
      entry.baseUrl ??
      (entry.apiKey === undefined && own?.apiKey !== undefined ? nativeUrl(own.baseUrl, entry.type) : undefined) ??
      row.baseUrl ??
      ''
    ).replace(/\/+$/, '');
    const needsKey = row.keyless !== true && entry.baseUrl === undefined;
    return {
      name: nth === 1 ? entry.type : `${entry.type}-${nth}`,
      entry,
      baseUrl,
      key,
      keys: [{ at: 0, id: 'apiKey', name: `${section}[${at}].apiKey`, value: key }],
      model: entry.model ?? row.model,
      egress: egressFor(baseUrl === '' || baseUrl === row.baseUrl ? [] : [hostOf(baseUrl)]),
      nowMs: clock.now,
      missing: needsKey && key === undefined ? `${section}[${at}].apiKey is not set, and neither is ${row.keyEnv.join(' or ')}` : undefined,
    };
  });
}

/** Returns what `resolve` made of the same entries and model providers before. */
export function keepWhileEqual<Entry extends ProviderEntry>(resolve: typeof resolveProviders<Entry>): typeof resolveProviders<Entry> {
  let last: { readonly entries: readonly Entry[]; readonly modelProviders: ProvidersConfig; readonly made: readonly Provider<Entry>[] } | undefined;
  return (section, entries, rows, deps) => {
    if (last?.entries !== entries || last.modelProviders !== deps.modelProviders)
      last = { entries, modelProviders: deps.modelProviders, made: resolve(section, entries, rows, deps) };
    return last.made;
  };
}

function keyIn(names: readonly string[], env: Readonly<Record<string, string | undefined>>): string | undefined {
  for (const name of names) {
    const value = env[name]?.trim();
    if (value !== undefined && value !== '') return value;
  }
  return undefined;
}

/** Google's address for chat in the style of OpenAI differs from that of its native API. */
function nativeUrl(baseUrl: string | undefined, type: string): string | undefined {
  return type === 'google' ? baseUrl?.replace(/\/openai\/?$/, '') : baseUrl;
}

function hostOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  return `${url.hostname}:${url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port}`;
}
