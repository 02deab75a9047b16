/** The version of this package. Stated, not read from package.json, so that an application can be bundled with it. */
export const VERSION = '0.1.0';
