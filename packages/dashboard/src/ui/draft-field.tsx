import type { ReactNode } from 'react';
import { errorOf, type FieldErrors } from '../data/field-errors.ts';
import { Field } from './parts.tsx';

/** A field with its error message below. */
export function DraftField({
  path,
  errors,
  label,
  hint,
  children,
}: {
  readonly path: string;
  readonly errors: FieldErrors;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly children: (own: { id: string; 'aria-describedby': string | undefined; 'aria-invalid': boolean | undefined }) => ReactNode;
}) {
  const message = errorOf(errors, path);
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <>
          {children({
            id,
            'aria-describedby': [message === undefined ? undefined : `${id}-error`, hintId].filter((one) => one !== undefined).join(' ') || undefined,
            'aria-invalid': message === undefined ? undefined : true,
          })}
          {message !== undefined && (
            <p className="field-error" id={`${id}-error`}>
              {message}
            </p>
          )}
        </>
      )}
    </Field>
  );
}
