/** Deciders other than people; no caller may give itself a name of this kind. */
export const systemDecider = { timeout: 'system:timeout', dropped: 'system:dropped' } as const;
