import { isRecord, valueAt } from '../../ui/schema/paths.ts';
import type { Lookup } from '../../ui/schema/schema.ts';
import { childSettings, entrySetting, type Setting } from '../../ui/schema/setting.ts';

/** A key that can be found: of a section, or one that all entries of a record have. */
export interface Findable {
  readonly setting: Setting;
  /** True for a key of entries: `*` stands for their names in its path. */
  readonly template: boolean;
  /** Everything that a query is compared with, in lower case. */
  readonly text: string;
  /** Title and path alone: matches of these come first. */
  readonly name: string;
}

/** Lists all keys of the schema, those of entries once. */
export function findableSettings(sections: readonly Setting[], lookup: Lookup): readonly Findable[] {
  const found: Findable[] = [];
  const visit = (setting: Setting, template: boolean): void => {
    const { kind } = setting.shape;
    const name = `${setting.title} ${shownId(setting)}`.toLowerCase();
    if (kind !== 'object') found.push({ setting, template, name, text: `${name} ${setting.description?.toLowerCase() ?? ''}` });
    if (kind === 'object') for (const child of childSettings(setting, lookup)) visit(child, template);
    else if (kind === 'record' || kind === 'items') {
      const entry = entrySetting(setting, '*', lookup);
      for (const child of childSettings(entry, lookup)) visit(child, true);
    }
  };
  for (const section of sections) visit(section, false);
  return found;
}

/** The path as a text, with `*` for the names of entries. */
export function shownId({ id }: Setting): string {
  return id.replaceAll('["*"]', '.*');
}

/** Returns what the page of a section shows of a key: the key, or of a key of entries the record or list. */
export function shownSetting({ setting, template }: Findable, all: readonly Findable[]): Setting | undefined {
  return template ? all.find((one) => !one.template && isWithin(setting, one.setting))?.setting : setting;
}

function isWithin(setting: Setting, other: Setting): boolean {
  return (other.shape.kind === 'record' || other.shape.kind === 'items') && setting.id.startsWith(`${other.id}[`);
}

/** Returns the page of a section of the configuration, at one of its keys when it is named. */
export function sectionPath(section: string, key?: Pick<Setting, 'id'>): string {
  return `/settings/config/${[section, ...(key === undefined ? [] : [key.id])].map(encodeURIComponent).join('/')}`;
}

/** An entry of a record of config.yaml that has the searched name. */
export interface FoundEntry {
  readonly record: Setting;
  readonly key: string;
}

export interface Found {
  readonly settings: readonly Findable[];
  readonly entries: readonly FoundEntry[];
}

/** Returns what has all terms of a query, in the order of the sections, names before descriptions. */
export function searchSettings(findable: readonly Findable[], document: unknown, query: string): Found {
  const terms = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return { settings: [], entries: [] };
  const hasAll = (text: string): boolean => terms.every((term) => text.includes(term));
  const settings = findable.filter(({ text }) => hasAll(text));
  const inName = settings.filter(({ name }) => hasAll(name));
  const entries = findable
    .filter(({ setting, template }) => !template && setting.shape.kind === 'record')
    .flatMap(({ setting: record }) => {
      const value = valueAt(document, record.path);
      return isRecord(value) ? Object.keys(value).flatMap((key) => (hasAll(key.toLowerCase()) ? [{ record, key }] : [])) : [];
    });
  return { settings: [...inName, ...settings.filter((one) => !inName.includes(one))], entries };
}
