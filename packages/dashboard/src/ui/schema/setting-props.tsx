import type { ReactNode } from 'react';
import type { FieldErrors } from '../../data/field-errors.ts';
import { isRecord } from './paths.ts';
import type { Setting } from './setting.ts';

export interface SettingProps {
  readonly setting: Setting;
  /** The value of the draft, of what is stored, and in force: undefined where there is none. */
  readonly value: unknown;
  readonly stored: unknown;
  readonly inForce: unknown;
  readonly errors: FieldErrors;
  /** 0 for a key of a section; deeper ones have smaller headings. */
  readonly depth?: number;
}

export function partOf(value: unknown, key: string | number): unknown {
  if (Array.isArray(value)) return typeof key === 'number' ? value[key] : undefined;
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Descriptions mark names as Markdown does. */
export function plainText(description: string): ReactNode {
  const parts = description.split('`');
  return parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

/** Id of the element that shows a key, to scroll to. */
export function elementId({ id }: Pick<Setting, 'id'>): string {
  return `setting-${id}`;
}
