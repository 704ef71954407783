import { isDeepStrictEqual } from 'node:util';
import { type AgentConfig, heartbeatFields, once } from '@gatehouse/contract';
import { documentValue } from '../../../kernel/config/edit.ts';
import { mergePatch, withoutNulls } from '../../../kernel/merge-patch.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Source of a value of an agent; `installation`: an absent key for which another section has a value. */
export type Origin = 'file' | 'reference' | 'default' | 'installation';

/** Optional keys that follow the installation when they are absent. */
const inherited = once(() => [
  'model',
  'autonomy.profile',
  'approvals.unattended',
  ...Object.keys(heartbeatFields()).map((key) => `heartbeat.${key}`),
]);

/** Returns an agent's entry as the text of config.yaml has it, with its references; undefined when there is none. */
export function entryIn(text: string, agentId: string): Fields | undefined {
  return entryOf(documentValue(text), agentId);
}

/** Returns an agent's entry of the parsed text. */
export function entryOf(document: unknown, agentId: string): Fields | undefined {
  return fieldsOf(fieldsOf(document, 'agents'), agentId);
}

/** Returns an entry with a patch of plain values applied. A reference stays where the patch repeats its value, `inForce`. */
export function patchedEntry(entry: Fields, inForce: Fields, patch: Fields): Record<string, unknown> {
  return withoutNulls(mergePatch(entry, changesOf(patch, entry, inForce)));
}

/** Returns a value as config.yaml writes it: text that looks like a reference is escaped. */
export function written(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('${', () => '$${');
  if (Array.isArray(value)) return value.map(written);
  return isFields(value) ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, written(part)])) : value;
}

/** Returns the parts of a configuration that differ from its defaults. */
export function withoutDefaults(config: Fields, defaults: Fields): Record<string, unknown> {
  const kept: [string, unknown][] = [];
  for (const [key, value] of Object.entries(config)) {
    const usual = own(defaults, key);
    if (isDeepStrictEqual(value, usual)) continue;
    kept.push([key, isFields(value) && isFields(usual) ? withoutDefaults(value, usual) : value]);
  }
  return Object.fromEntries(kept);
}

/** Returns where each value of an agent comes from, by dotted key. */
export function originsOf(config: AgentConfig, entry: Fields | undefined): Record<string, Origin> {
  const origins: [string, Origin][] = [];
  const visit = (part: Fields, from: unknown, prefix: string): void => {
    for (const [key, value] of Object.entries(part)) {
      const source = isFields(from) ? own(from, key) : undefined;
      const path = `${prefix}${key}`;
      if (isFields(value) && Object.keys(value).length > 0) visit(value, source, `${path}.`);
      else origins.push([path, source === undefined ? 'default' : hasReference(source) ? 'reference' : 'file']);
    }
  };
  visit(config, entry, '');
  const found = new Map(origins);
  for (const path of inherited()) if (!found.has(path)) found.set(path, 'installation');
  return Object.fromEntries(found);
}

function changesOf(patch: Fields, entry: Fields, inForce: Fields): Record<string, unknown> {
  const changes: [string, unknown][] = [];
  for (const [key, value] of Object.entries(patch)) {
    const [present, current] = [own(entry, key), own(inForce, key)];
    if (hasReference(present) && isDeepStrictEqual(current, value)) continue;
    changes.push([key, isFields(value) ? changesOf(value, isFields(present) ? present : {}, isFields(current) ? current : {}) : written(value)]);
  }
  return Object.fromEntries(changes);
}

function hasReference(value: unknown): boolean {
  return value !== undefined && /(?<!\$)\$\{/.test(JSON.stringify(value));
}

function fieldsOf(value: unknown, key: string): Fields | undefined {
  const part = isFields(value) ? own(value, key) : undefined;
  return isFields(part) ? part : undefined;
}

function own(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
