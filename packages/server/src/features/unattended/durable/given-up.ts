import type { WorkItem } from './api.ts';

/** Says why accepted work was given up. What the provider said while the work waited for it is for owners. */
export function givenUp({ attempts, resumes, waiting }: WorkItem, errorKind: string): string {
  if (errorKind === 'deleted') return 'Its conversation was deleted while it waited';
  if (errorKind === 'killed') return 'It was stopped while it waited';
  if (errorKind === 'too_many_resumes') return `The daemon ended ${resumes} times while it did this`;
  const tries = `${attempts} ${attempts === 1 ? 'try' : 'tries'} failed, the last with ${errorKind}`;
  return waiting?.cause === undefined ? tries : `${tries}; before that it waited: ${waiting.cause}`;
}
