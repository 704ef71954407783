import { createContext, use } from 'react';
import type { Store } from '../../data/store.ts';
import type { Lookup } from './schema.ts';
import type { Setting } from './setting.ts';

/** What all fields of a form share. The object stays the same, so that a field renders again only for its own value. */
export interface SettingForm {
  readonly lookup: Lookup;
  /** Sets a value; undefined returns the key to its default. */
  readonly set: (setting: Setting, value: unknown) => void;
  /** Reports why a text is not a valid value, or with undefined that it is one again. */
  readonly report: (id: string, problem: string | undefined) => void;
  /** Ids of the entries that are shown with their fields. */
  readonly opened: Store<ReadonlySet<string>>;
  /** Keys that config.yaml has in another state than the running gateway, until a restart. */
  readonly waiting: ReadonlySet<string>;
  /** Models of the catalog, to choose from. */
  readonly models: readonly string[];
}

export const SettingFormContext = createContext<SettingForm | undefined>(undefined);

export function useSettingForm(): SettingForm {
  const form = use(SettingFormContext);
  if (form === undefined) throw new Error('useSettingForm must be called inside a form.');
  return form;
}
