const silentToken = /^\s*(?:HEARTBEAT_OK|NO_REPLY|\[SILENT\])(?!\w)/;

/** Whether a model or a script says that there is nothing to report, or says nothing. */
export const isSilent = (text: string): boolean => text.trim() === '' || silentToken.test(text);
