/** The kind of durable work that occurrences are. Apart from the rest, because the storage threads need it. */
export const cronWork = 'cron';
