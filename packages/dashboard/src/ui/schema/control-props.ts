import type { Setting } from './setting.ts';

/** What a control needs: the value of the draft, undefined where the key is not set. */
export interface ControlProps {
  readonly setting: Setting;
  readonly value: unknown;
  /** The value that holds without one in the draft. */
  readonly fallback: unknown;
  readonly onChange: (value: unknown) => void;
  readonly onProblem: (message: string | undefined) => void;
  readonly error: string | undefined;
  readonly own: { readonly id: string; readonly 'aria-describedby': string | undefined; readonly 'aria-invalid': boolean | undefined };
}
