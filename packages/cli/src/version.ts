/** The version of the command; a test keeps it equal to package.json, so that the bundle needs no extra file. */
export const version = '0.1.0';
