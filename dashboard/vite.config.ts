import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The names of the files are fixed, because the daemon names each of them. Browsers keep them by their ETag.
export default defineConfig({
  plugins: [svelte()],
  base: "/dashboard/",
  publicDir: "public",
  build: {
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rolldownOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app.[ext]", codeSplitting: false },
    },
  },
  server: {
    // npm run dev shows the page while it is edited, with the data of a daemon on this machine.
    proxy: { "/v1": { target: "http://127.0.0.1:9477", changeOrigin: true } },
  },
});
