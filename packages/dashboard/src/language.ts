import { createElement, Fragment, type ReactNode } from 'react';

type Forms = Partial<Record<Intl.LDMLPluralRule, string>>;
type Catalogue = Readonly<Record<string, string | Forms>>;

/** The languages of the dashboard, each by its own name. */
export const languageNames = { en: 'English', de: 'Deutsch', es: 'Español', fr: 'Français', ja: '日本語', 'zh-CN': '简体中文' } as const;
export type Language = keyof typeof languageNames;

/** The English texts are in the code: only another language loads a file. */
const catalogues: Readonly<Partial<Record<Language, () => Promise<{ readonly default: Catalogue }>>>> = {
  de: () => import('./languages/de.json', { with: { type: 'json' } }),
  es: () => import('./languages/es.json', { with: { type: 'json' } }),
  fr: () => import('./languages/fr.json', { with: { type: 'json' } }),
  ja: () => import('./languages/ja.json', { with: { type: 'json' } }),
  'zh-CN': () => import('./languages/zh-CN.json', { with: { type: 'json' } }),
};

const storageKey = 'gatehouse.language';
/** True for the tag of a language of the dashboard. */
export const isLanguage = (value: string | null): value is Language => value !== null && Object.hasOwn(languageNames, value);
const baseOf = (tag: string): string => tag.split('-', 1)[0] ?? tag;

/** Returns the script of a tag, as in Hant for zh-TW; undefined for what is not a tag. */
function scriptOf(tag: string): string | undefined {
  try {
    return new Intl.Locale(tag).maximize().script;
  } catch {
    return undefined;
  }
}

/** True for tags of one language in one script: simplified and traditional Chinese are read by different people. */
const isAlike = (one: string, other: string): boolean => one === other || (baseOf(one) === baseOf(other) && scriptOf(one) === scriptOf(other));

/**
 * Returns the first of the wanted BCP 47 tags that the dashboard speaks, by language and script when the region differs; English when there is
 * none. A tag of a language alone, as browsers list it after one with a region, is of the same script.
 */
export function pickLanguage(tags: readonly string[]): Language {
  const known = Object.keys(languageNames).filter(isLanguage);
  for (const tag of tags) {
    const regional = tags.find((one) => baseOf(one) === baseOf(tag)) ?? tag;
    const found = known.find((one) => one === tag) ?? known.find((one) => isAlike(one, tag === baseOf(tag) ? regional : tag));
    if (found !== undefined) return found;
  }
  return 'en';
}

// Pages are also rendered where there is no browser, in tests.
const stored = typeof localStorage === 'undefined' ? null : localStorage.getItem(storageKey);

/** The selected language, or that of the browser. It is fixed while the page is open, so that constants may hold translated texts. */
export const language: Language = isLanguage(stored) ? stored : pickLanguage(navigator.languages);

/** The tag by which dates and numbers are formatted: that of the browser, with its region, when it is of the selected language. */
export const locale: string = navigator.languages.find((tag) => isAlike(tag, language)) ?? language;

let catalogue: Catalogue = {};

/** Loads the texts of the language. Called before any module with texts is loaded. */
export async function loadCatalogue(): Promise<void> {
  // English is better than no page: an update has replaced the file, or the gateway does not respond.
  catalogue = (await catalogues[language]?.().catch(() => undefined))?.default ?? {};
}

/** Keeps the language in this browser and loads the page again in it. */
export function setLanguage(next: Language): void {
  localStorage.setItem(storageKey, next);
  location.reload();
}

const rules = new Intl.PluralRules(locale);

function translate(message: string): string {
  const found = catalogue[message];
  return typeof found === 'string' ? found : message;
}

/** Returns an English text in the language of the user. `{name}` in it is replaced by the value of that name. */
export function t(message: string, values: Readonly<Record<string, string | number | null | undefined>> = {}): string {
  return translate(message).replaceAll(/\{(\w+)\}/g, (found, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : found));
}

/** Returns a text with elements in it, otherwise as `t`. */
export function tx(message: string, values: Readonly<Record<string, ReactNode>>): ReactNode {
  const parts = translate(message).split(/\{(\w+)\}/);
  return createElement(Fragment, null, ...parts.map((part, index) => (index % 2 === 0 ? part : values[part])));
}

/** Returns "1 file" or "3 files" with a count that is already formatted, in the language of the user: its forms are listed under "{count} file". */
export function counted(value: number, formatted: string, one: string, many: string): string {
  const forms = catalogue[`{count} ${one}`];
  const form = typeof forms === 'object' ? (forms[rules.select(value)] ?? forms.other) : undefined;
  return (form ?? `{count} ${value === 1 ? one : many}`).replace('{count}', formatted);
}
