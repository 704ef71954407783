import type { FieldErrors } from '../../data/field-errors.ts';
import type { JobDraft } from './job-draft.ts';

/** Props shared by the sections of the job form. */
export interface DraftFieldProps {
  readonly draft: JobDraft;
  readonly change: (part: Partial<JobDraft>) => void;
  readonly errors: FieldErrors;
}
