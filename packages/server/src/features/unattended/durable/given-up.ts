import type { WorkItem } from './api.ts';

/** Returns why accepted work was given up. Includes the provider's error messages, so show it to owners only. */
export function givenUp({ attempts, resumes, waiting }: WorkItem, errorKind: string): string {
  if (errorKind === 'deleted') return 'Its conversation was deleted while it was waiting';
  if (errorKind === 'killed') return 'It was stopped while waiting; its conversation shows what it had done';
  if (errorKind === 'too_many_resumes') return `The daemon died ${resumes} times during this work`;
  const failures = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'} failed, the last with ${errorKind}`;
  return waiting?.cause === undefined ? failures : `${failures}; before that it was waiting: ${waiting.cause}`;
}
