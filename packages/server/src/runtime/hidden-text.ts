/**
 * Characters that a reader does not see but a model does, or that show text in a different order: controls
 * except tab and line ends, bidi embeddings and isolates, zero-width characters without a use in any script, and the
 * tag block, in which whole hidden sentences fit. Joiners and direction marks stay: scripts and emoji need them.
 */
export const hiddenCharacters =
  /[\u034f\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

const marks = /[\p{M}\p{Cf}]/gu;

/** Folds text, for matching only: compatibility forms (full-width, circled) become plain; accents, joiners and invisible characters vanish. */
export function foldText(text: string): string {
  return text.normalize('NFKD').replace(marks, '');
}
