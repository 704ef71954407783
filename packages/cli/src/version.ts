/** Version of the command; a test holds it equal to package.json, so that the bundle needs no file beside it. */
export const version = '0.1.0';
