import type { FieldErrors } from '../../data/field-errors.ts';
import type { JobDraft } from './job-draft.ts';

/** What the parts of the form share. */
export interface DraftFieldProps {
  readonly draft: JobDraft;
  readonly change: (part: Partial<JobDraft>) => void;
  readonly errors: FieldErrors;
}
