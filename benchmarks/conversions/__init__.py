"""The conversion matrix: ordinary models of every framework, each converted and held to the framework's answers."""
