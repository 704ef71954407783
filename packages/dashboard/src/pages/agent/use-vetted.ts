import { useState } from 'react';
import { useAction } from '../../data/use-action.ts';

/** State of a call that passes the vetting gate. */
export interface Vetted {
  readonly busy: boolean;
  readonly error: unknown;
  /** The gate's complete refusal; with `confirm`, the same call may be repeated with `force`. */
  readonly refusal: { readonly message: string; readonly confirm: boolean } | undefined;
  /** Never forces: that takes a call of `confirmed` after the refusal was shown. */
  readonly run: () => void;
  readonly confirmed: () => void;
  /** Clears the refusal because the input has changed. */
  readonly changed: () => void;
}

const refused = /^\[skill_vet_(confirm|rejected):\w+\]/;

/** Calls a method that installs a skill, and keeps the gate's answer. */
export function useVetted(install: (force: boolean) => Promise<void>): Vetted {
  const { busy, error, run, clearError } = useAction();
  const [refusal, setRefusal] = useState<Vetted['refusal']>();
  const start = (force: boolean): void => {
    setRefusal(undefined);
    run(() =>
      install(force).catch((failure: unknown) => {
        const kind = failure instanceof Error ? refused.exec(failure.message)?.[1] : undefined;
        if (kind === undefined || !(failure instanceof Error)) throw failure;
        setRefusal({ message: failure.message, confirm: kind === 'confirm' });
      }),
    );
  };
  return {
    busy,
    error,
    refusal,
    run: () => start(false),
    confirmed: () => start(true),
    changed: () => {
      setRefusal(undefined);
      clearError();
    },
  };
}
