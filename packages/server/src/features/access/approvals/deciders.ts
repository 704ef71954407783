/** Who decides when no person does; no caller may give itself a name of this kind. */
export const systemDecider = { timeout: 'system:timeout', dropped: 'system:dropped' } as const;
