/** The work kind of occurrences. In a separate file, because the storage threads import it. */
export const cronWork = 'cron';
