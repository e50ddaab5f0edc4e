// Shows the description that this server gives of itself. No validator elsewhere is asked about it.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null,
  defaultModelsExpandDepth: 0,
  // Of its themes for code one whose every colour is bright enough on its ground.
  syntaxHighlight: { theme: "tomorrow-night" },
});
