/** Version of the daemon; a test compares it with package.json, so that the bundle needs no file next to it. */
export const version = '0.1.0';
